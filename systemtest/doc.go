// Package systemtest proves with real processes what users are promised: it starts the
// program with its databases, a simulated authority and clients, kills and cuts what can be
// killed and cut, and compares everything that was acknowledged with what is there.
package systemtest
