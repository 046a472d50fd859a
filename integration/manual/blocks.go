package manual

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// Block is a fenced block of a page.
type Block struct {
	Page string // README.md, or docs/….md
	Line int    // of its fence
	Lang string // what the fence says
	Text string
}

func (b Block) String() string { return fmt.Sprintf("%s:%d", b.Page, b.Line) }

// Pages returns the manual's pages: README.md, those for users, then those about the project itself.
func Pages(root string) ([]string, error) {
	pages := []string{filepath.Join(root, "README.md")}
	for _, dir := range []string{"docs", "docs/project"} {
		more, err := filepath.Glob(filepath.Join(root, dir, "*.md"))
		if err != nil {
			return nil, err
		}
		pages = append(pages, more...)
	}
	return pages, nil
}

// Blocks returns the blocks of the manual, in the order of pages and lines.
func Blocks(root string) ([]Block, error) {
	pages, err := Pages(root)
	if err != nil {
		return nil, err
	}
	var all []Block
	for _, file := range pages {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("reading the manual: %w", err)
		}
		page, err := filepath.Rel(root, file)
		if err != nil {
			return nil, err
		}
		blocks, err := parse(filepath.ToSlash(page), string(text))
		if err != nil {
			return nil, err
		}
		all = append(all, blocks...)
	}
	return all, nil
}

func parse(page, text string) (blocks []Block, err error) {
	open := false
	for i, line := range strings.Split(text, "\n") {
		lang, fence := strings.CutPrefix(line, "```")
		switch {
		case fence && !open:
			blocks, open = append(blocks, Block{Page: page, Line: i + 1, Lang: lang}), true
		case fence:
			open = false
		case open:
			blocks[len(blocks)-1].Text += line + "\n"
		}
	}
	if open {
		return nil, fmt.Errorf("%s: the block does not end", blocks[len(blocks)-1])
	}
	return blocks, nil
}

// Commands is what a shell is to run; "" if the block has no commands.
func (b Block) Commands() string {
	if b.Lang == "sh" {
		return b.Text
	}
	var s strings.Builder
	for line := range strings.Lines(b.Text) {
		if command, ok := strings.CutPrefix(line, "$ "); ok {
			s.WriteString(command)
		}
	}
	return s.String()
}

// Settings are NAME=value of a block of settings, comments left out.
func (b Block) Settings() (settings []string) {
	if b.Lang != "env" {
		return nil
	}
	for line := range strings.Lines(b.Text) {
		setting, _, _ := strings.Cut(line, " #")
		settings = append(settings, strings.TrimSpace(setting))
	}
	return settings
}

// unmarked are lines that look like commands.
var unmarked = regexp.MustCompile(`(?m)^(bin/)?(bridge|make|go|export|docker|helm|kubectl|kcat|curl|az|mvn) [-a-z]|^export |^BRIDGE_\w+=`)

// Unmarked reports whether the block has commands or settings and does not say so.
func (b Block) Unmarked() bool {
	return b.Lang != "sh" && b.Lang != "env" && unmarked.MatchString(b.Text)
}
