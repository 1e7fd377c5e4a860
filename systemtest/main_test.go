package systemtest

import (
	"os"
	"testing"

	"github.com/fiscalhub/fiscalhub/systemtest/harness"
	"github.com/fiscalhub/fiscalhub/systemtest/power"
)

func TestMain(m *testing.M) {
	power.Main() // this program is also the file system of TestPowerLoss
	os.Exit(harness.Tests{M: m}.Run())
}
