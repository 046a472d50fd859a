package ops

import "time"

// Reload is the last reload of the settings file.
type Reload struct {
	Time     time.Time `json:"time"`
	Problems []string  `json:"problems"` // of the file, or of bridges, which run on with their former settings
}

// Reloaded reports a reload of the settings file, and what was rejected in it.
func (f *Fleet) Reloaded(problems []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if problems == nil {
		problems = []string{}
	}
	f.reload = &Reload{time.Now().UTC(), problems}
}

// lastReload returns the last reload, nil if there was none.
func (f *Fleet) lastReload() *Reload {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.reload
}
