// Package deploy holds examples of installations: units of systemd, packages, containers,
// alerts and dashboards. Its tests keep them true.
package deploy
