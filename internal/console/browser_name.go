package console

import "strings"

// browserName returns a short name of a browser and its system, from the header that the
// browser sends. It returns the beginning of an unknown header.
func browserName(agent string) string {
	first := func(pairs ...[2]string) string {
		for _, pair := range pairs {
			if strings.Contains(agent, pair[0]) {
				return pair[1]
			}
		}
		return ""
	}
	browser := first([2]string{"Edg/", "Edge"}, [2]string{"OPR/", "Opera"}, [2]string{"Firefox/", "Firefox"}, [2]string{"SamsungBrowser/", "Samsung Internet"},
		[2]string{"Chrome/", "Chrome"}, [2]string{"CriOS/", "Chrome"}, [2]string{"FxiOS/", "Firefox"}, [2]string{"Safari/", "Safari"}, [2]string{"curl/", "curl"})
	system := first([2]string{"Android", "Android"}, [2]string{"iPhone", "iPhone"}, [2]string{"iPad", "iPad"}, [2]string{"Windows", "Windows"},
		[2]string{"Mac OS X", "macOS"}, [2]string{"CrOS", "ChromeOS"}, [2]string{"Linux", "Linux"})
	switch {
	case browser == "" && agent == "":
		return "–"
	case browser == "":
		return agent[:min(len(agent), 40)]
	case system == "":
		return browser
	}
	return browser + " · " + system
}
