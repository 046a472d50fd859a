package plain

import "fmt"

// SettingsError says that the settings do not fit each other, the stored state or the broker. Another attempt does not
// help.
type SettingsError struct{ Problem string }

func (e *SettingsError) Error() string { return e.Problem }

// SettingsErrorf returns a SettingsError with a text as by fmt.Sprintf.
func SettingsErrorf(format string, args ...any) error {
	return &SettingsError{Problem: fmt.Sprintf(format, args...)}
}
