# From source:   docker build --build-arg VERSION=1.2.3 --build-arg REVISION=$(git rev-parse HEAD) -t bridge .
# Of a release:  GoReleaser builds the target "release" around its binaries. It needs no other image.
# docker run --read-only --cap-drop ALL --security-opt no-new-privileges bridge

# CONTRIBUTING.md says where the digest comes from.
ARG GO_IMAGE=golang:1.26.8@sha256:0f063af2d465d8dcae54cce04278ada488b96f77b42449c8d071e47d016cc65a

# All but the program, which has Mozilla's certificate authorities in itself.
FROM scratch AS base
ARG VERSION=devel
ARG REVISION=unknown
ARG CREATED=unknown
LABEL org.opencontainers.image.title="bridge" \
      org.opencontainers.image.description="Carries the whole change feed of an Azure Storage account into Kafka" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="$VERSION" \
      org.opencontainers.image.revision="$REVISION" \
      org.opencontainers.image.created="$CREATED"
COPY LICENSE THIRD_PARTY_NOTICES /licenses/
# A number, so that Kubernetes can verify that it is not root.
USER 65532:65532
EXPOSE 8080
# For Docker and Compose; Kubernetes uses its own probes. The image has no shell.
HEALTHCHECK --interval=30s --timeout=5s --start-period=60s CMD ["/bridge", "healthcheck"]
ENTRYPOINT ["/bridge"]
CMD ["run"]

FROM base AS release
ARG TARGETPLATFORM
COPY $TARGETPLATFORM/bridge /bridge

# Build on the machine's own platform and cross-compile, which is faster than an emulator.
FROM --platform=$BUILDPLATFORM $GO_IMAGE AS build
WORKDIR /src
# Modules have their own layer, which stays cached while only code changes.
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ARG VERSION=devel
ARG TARGETOS
ARG TARGETARCH
RUN CGO_ENABLED=0 GOOS=$TARGETOS GOARCH=$TARGETARCH \
    go build -trimpath -ldflags "-s -w -X main.version=$VERSION" -o /bridge ./cmd/bridge

FROM base
COPY --from=build /bridge /bridge
