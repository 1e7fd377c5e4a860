package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/fiscalhub/fiscalhub/bench/report"
)

// thisMachine describes the machine. What the system does not show is "unknown".
func (b *bench) thisMachine(ctx context.Context) report.Machine {
	m := report.Machine{
		Processor: first(`(?m)^model name\s*:\s*(.+)$`, "/proc/cpuinfo"), Cores: runtime.NumCPU(), Memory: "unknown",
		System: first(`(?m)^PRETTY_NAME="?([^"\n]+)`, "/etc/os-release") + ", kernel " + first(`^(\S+)`, "/proc/sys/kernel/osrelease"),
		Disk:   diskOf(ctx, b.dir), Go: runtime.Version(), PostgreSQL: "unknown", LoadBefore: load(),
	}
	if kib, err := strconv.ParseFloat(first(`MemTotal:\s*(\d+) kB`, "/proc/meminfo"), 64); err == nil {
		m.Memory = fmt.Sprintf("%.0f GiB", kib/(1<<20))
	}
	if out, err := exec.CommandContext(ctx, "pg_config", "--version").Output(); err == nil {
		m.PostgreSQL = strings.TrimSpace(strings.TrimPrefix(string(out), "PostgreSQL "))
	}
	return m
}

// first returns the first group of a pattern in a file.
func first(pattern, path string) string {
	raw, err := os.ReadFile(path)
	if err != nil {
		return "unknown"
	}
	if m := regexp.MustCompile(pattern).FindSubmatch(raw); m != nil {
		return strings.TrimSpace(string(m[1]))
	}
	return "unknown"
}

// load returns the load average of the last minute.
func load() string { return first(`^(\S+)`, "/proc/loadavg") }

// processorTimes returns the times of all processors since the start of the machine: user,
// nice, system, idle, waiting, interrupts of two kinds, stolen by other machines.
func processorTimes() (times [8]float64) {
	for i, field := range strings.Fields(first(`^cpu +(.*)`, "/proc/stat")) {
		if i < len(times) {
			times[i], _ = strconv.ParseFloat(field, 64) // 0 when it is not known
		}
	}
	return times
}

// stolenSince returns the part of the processor time that other machines on the same
// hardware have taken.
func stolenSince(start [8]float64) string {
	now, total := processorTimes(), 0.0
	for i := range now {
		total += now[i] - start[i]
	}
	if total == 0 {
		return ""
	}
	return fmt.Sprintf("%.1f %%", 100*(now[7]-start[7])/total)
}

// diskOf names the file system of a folder, and how long the disk takes to store 4 KiB.
func diskOf(ctx context.Context, folder string) string {
	kind := "unknown"
	if out, err := exec.CommandContext(ctx, "stat", "-f", "-c", "%T", folder).Output(); err == nil {
		kind = strings.TrimSpace(string(out))
	}
	f, err := os.Create(filepath.Join(folder, "sync"))
	if err != nil {
		return kind
	}
	defer func() { _ = f.Close() }()
	page := make([]byte, 4096)
	took := median(50, func() error {
		if _, err := f.Write(page); err != nil {
			return err
		}
		return f.Sync()
	})
	if took.err != nil {
		return kind
	}
	return fmt.Sprintf("%s, a synced write of 4 KiB takes %s", kind, milliseconds(took.took))
}

// processTime returns the processor time that the service has used, and the part of it in
// the kernel.
func (s *service) processTime() (total, kernel time.Duration, err error) {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", s.cmd.Process.Pid))
	if err != nil {
		return 0, 0, err
	}
	// The name of the program is in brackets and may contain spaces.
	fields := strings.Fields(string(raw[strings.LastIndexByte(string(raw), ')')+1:]))
	if len(fields) < 13 {
		return 0, 0, fmt.Errorf("/proc/%d/stat has %d fields", s.cmd.Process.Pid, len(fields))
	}
	user, err := strconv.ParseInt(fields[11], 10, 64)
	if err != nil {
		return 0, 0, err
	}
	system, err := strconv.ParseInt(fields[12], 10, 64)
	const tick = time.Second / 100 // of all Linux systems
	return time.Duration(user+system) * tick, time.Duration(system) * tick, err
}

// usage is what a service has used up to a moment.
type usage struct {
	total, kernel       time.Duration
	commits, statements float64
}

func (s *service) usage(ctx context.Context) (u usage, err error) {
	if u.total, u.kernel, err = s.processTime(); err != nil {
		return u, err
	}
	if u.commits, err = s.metric(ctx, "fiscalhub_database_commits_total"); err != nil {
		return u, err
	}
	u.statements, err = s.metric(ctx, "fiscalhub_database_statements_total")
	return u, err
}

// used adds the figures of what the service has used for each of count things.
func (b *bench) used(before, after usage, count int, thing string) {
	n := float64(count)
	each := func(d time.Duration) string { return fmt.Sprintf("%.3f ms", d.Seconds()*1000/n) }
	b.fact("  processor time of the service for each "+thing, fmt.Sprintf("%s, %s of it in the kernel", each(after.total-before.total), each(after.kernel-before.kernel)), "")
	b.fact("  commits and statements for each "+thing, fmt.Sprintf("%.2f commits, %.1f statements", (after.commits-before.commits)/n, (after.statements-before.statements)/n), "")
}

// rateText returns how many a second.
func rateText(perSecond float64) string { return fmt.Sprintf("%.0f /s", perSecond) }
