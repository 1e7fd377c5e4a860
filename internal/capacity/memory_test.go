package capacity

import (
	"testing"
	"testing/fstest"
)

func TestMachineMemory(t *testing.T) {
	t.Parallel()
	const meminfo = "MemTotal:        8388608 kB\nMemFree:  123 kB\n" // 8 GiB
	tests := []struct {
		name  string
		files map[string]string
		want  int64
	}{
		{"no files", nil, 0},
		{"no control group", map[string]string{"proc/meminfo": meminfo}, 4 << 30},
		{"a group without a limit", map[string]string{"proc/meminfo": meminfo, "proc/self/cgroup": "0::/a\n", "sys/fs/cgroup/a/memory.max": "max\n"}, 4 << 30},
		{"a limit of the group", map[string]string{"proc/meminfo": meminfo, "proc/self/cgroup": "0::/a/b\n", "sys/fs/cgroup/a/b/memory.max": "1000000\n"}, 900_000},
		{"a limit of the group above", map[string]string{"proc/meminfo": meminfo, "proc/self/cgroup": "0::/a/b\n",
			"sys/fs/cgroup/a/b/memory.max": "max\n", "sys/fs/cgroup/a/memory.max": "2000000\n"}, 1_800_000},
		{"the smallest of several limits", map[string]string{"proc/meminfo": meminfo, "proc/self/cgroup": "0::/a/b\n",
			"sys/fs/cgroup/a/b/memory.max": "3000000\n", "sys/fs/cgroup/a/memory.max": "2000000\n"}, 1_800_000},
		{"a container", map[string]string{"proc/meminfo": meminfo, "proc/self/cgroup": "0::/docker/123\n", "sys/fs/cgroup/memory.max": "1000000\n"}, 900_000},
		{"the first version of control groups", map[string]string{"proc/meminfo": meminfo, "proc/self/cgroup": "5:cpu,cpuacct:/x\n4:memory:/a\n",
			"sys/fs/cgroup/memory/a/memory.limit_in_bytes": "1000000\n"}, 900_000},
		{"its value for no limit", map[string]string{"proc/meminfo": meminfo, "proc/self/cgroup": "4:memory:/\n",
			"sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n"}, 4 << 30},
		{"a limit above the memory of the machine", map[string]string{"proc/meminfo": meminfo, "proc/self/cgroup": "0::/\n",
			"sys/fs/cgroup/memory.max": "99999999999\n"}, 4 << 30},
		{"damaged files", map[string]string{"proc/meminfo": "MemTotal: much\n", "proc/self/cgroup": "x\n", "sys/fs/cgroup/memory.max": "?"}, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			files := fstest.MapFS{}
			for name, text := range tt.files {
				files[name] = &fstest.MapFile{Data: []byte(text)}
			}
			if got := MachineMemory(files); got.Bytes != tt.want {
				t.Errorf("%d bytes (%s), want %d", got.Bytes, got.Source, tt.want)
			}
		})
	}
}

func TestParseSize(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int64{
		"0": 0, "1073741824": 1 << 30, "512MiB": 512 << 20, "512 MiB": 512 << 20, "2G": 2 << 30, "2gi": 2 << 30, "1500MB": 1_500_000_000, "64k": 64 << 10, "1TiB": 1 << 40,
		"": -1, "MiB": -1, "1.5GiB": -1, "-1": -1, "12X": -1, "1e9": -1, "99999999999999999999": -1, "9000000000TiB": -1, "1 2": -1,
	} {
		got, err := ParseSize(text)
		if want < 0 && err == nil || want >= 0 && (err != nil || got != want) {
			t.Errorf("%q: %d, %v", text, got, err)
		}
	}
}

// The budgets of bodies and answers fit into the memory several times, and have room
// for the largest document.
func TestDefaultLimitsFitTheMemory(t *testing.T) {
	t.Parallel()
	for _, memory := range []int64{MinMemory, 256 << 20, 512 << 20, 1 << 30, 64 << 30} {
		l := DefaultLimits(memory, 2)
		if all := l.TenantBytes + l.StrangerBytes + l.AnswerBytes; all > memory/2 {
			t.Errorf("of %d MiB the budgets take %d MiB", memory>>20, all>>20)
		}
		if l.StrangerBytes/2 < 8<<20 {
			t.Errorf("of %d MiB an address may hold %d MiB", memory>>20, l.StrangerBytes>>21)
		}
		if heap := HeapLimit(memory); heap <= 0 || heap >= memory {
			t.Errorf("of %d MiB the heap may take %d MiB", memory>>20, heap>>20)
		}
	}
}
