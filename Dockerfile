# docker build --build-arg GO_IMAGE=golang:1.26@sha256:<digest> --build-arg VERSION=1.2.3 --build-arg REVISION=$(git rev-parse HEAD) -t bridge .
# docker run --read-only --cap-drop ALL --security-opt no-new-privileges bridge

# A release names the digest too; CONTRIBUTING.md says where it comes from.
ARG GO_IMAGE=golang:1.26

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

FROM scratch
ARG VERSION=devel
ARG REVISION=unknown
ARG CREATED=unknown
LABEL org.opencontainers.image.title="bridge" \
      org.opencontainers.image.description="Carries every change of every blob in an Azure Storage account into Kafka" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="$VERSION" \
      org.opencontainers.image.revision="$REVISION" \
      org.opencontainers.image.created="$CREATED"
# Certificate authorities, for Azure and for brokers with public certificates.
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
COPY --from=build /bridge /bridge
COPY LICENSE THIRD_PARTY_NOTICES /licenses/
# A number, so that Kubernetes can verify that it is not root.
USER 65532:65532
EXPOSE 8080
# For Docker and Compose; Kubernetes uses its own probes. The image has no shell.
HEALTHCHECK --interval=30s --timeout=5s --start-period=60s CMD ["/bridge", "healthcheck"]
ENTRYPOINT ["/bridge"]
CMD ["run"]
