package envelope

import "testing"

func TestAccount(t *testing.T) {
	const group = "/subscriptions/1/resourceGroups/g/providers/Microsoft.Storage"
	for topic, want := range map[string]string{
		group + "/storageAccounts/pictures":                                     "pictures",
		group + "/storageAccounts/pictures/blobServices/default":                "pictures",
		"/resourceGroups/storageAccounts/providers/storageAccounts/pictures":    "pictures",
		"/resourceGroups/g/storageAccounts/former/moved/storageAccounts/photos": "photos",
		group + "/storageAccounts/":                                             "",
		"pictures":                                                              "",
		"":                                                                      "",
	} {
		if got := account(topic); got != want {
			t.Errorf("%s: account %q, want %q", topic, got, want)
		}
	}
}
