package main

import (
	"crypto/x509"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/simulator"
	"github.com/fiscalhub/fiscalhub/internal/xmlsig"
)

// Files in the folder of enrolled taxpayers, in addition to RNC.p12 and RNC.password.
const (
	rootsFile   = "roots.pem"
	rootKeyFile = "simulator-root.pem" // the root with its key, for a later start
)

// enrolledPerson signs for every enrolled taxpayer. The person does not exist.
const enrolledPerson = "00112345678"

// renewBefore is how long a certificate of an earlier start must still be valid to be
// used again.
const renewBefore = 30 * 24 * time.Hour

// enrolledView is an enrolled taxpayer in JSON.
type enrolledView struct {
	RNC         string `json:"rnc"`
	Certificate string `json:"certificate"`
	Password    string `json:"password_file"`
}

func (c simulatorCmd) enrolled() []enrolledView {
	var list []enrolledView
	for _, rnc := range c.Enroll {
		list = append(list, enrolledView{rnc, filepath.Join(c.Out, rnc+".p12"), filepath.Join(c.Out, rnc+".password")})
	}
	return list
}

// root reads the root of an earlier start, if there is one.
func (c simulatorCmd) root() ([]byte, error) {
	if (len(c.Enroll) == 0) != (c.Out == "") {
		return nil, wrongUsage("--enroll and --out belong together: --enroll RNC --out DIR",
			"--enroll y --out van juntos: --enroll RNC --out DIR")
	}
	for _, rnc := range c.Enroll {
		if !fiscal.IsRNC(rnc) {
			return nil, wrongUsage("--enroll: %q must be an RNC: 9 or 11 digits",
				"--enroll: %q debe ser un RNC: 9 u 11 dígitos", rnc)
		}
	}
	if c.Out == "" {
		return nil, nil
	}
	root, err := os.ReadFile(filepath.Join(c.Out, rootKeyFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return root, err
}

// enroll adds the taxpayers of --enroll to the simulator and writes their files. It
// keeps certificates of an earlier start that are still valid.
func (c simulatorCmd) enroll(sim *simulator.Simulator) error {
	if len(c.Enroll) == 0 {
		return nil
	}
	if err := os.MkdirAll(c.Out, 0o700); err != nil {
		return err
	}
	root, err := sim.RootWithKey()
	if err != nil {
		return err
	}
	for name, content := range map[string][]byte{rootKeyFile: root, rootsFile: sim.RootsPEM()} {
		if err := os.WriteFile(filepath.Join(c.Out, name), content, 0o600); err != nil {
			return err
		}
	}
	known := map[string]bool{}
	for _, taxpayer := range sim.Taxpayers() {
		known[taxpayer.RNC] = true // of the fixture
	}
	for _, e := range c.enrolled() {
		if !known[e.RNC] {
			if err := sim.AddTaxpayer(simulator.Baseline(e.RNC, enrolledPerson, demoExpiry().String())); err != nil {
				return err
			}
		}
		if err := e.writeCertificate(sim); err != nil {
			return err
		}
	}
	return nil
}

// writeCertificate writes the certificate and its password, unless the files have a
// certificate that is still valid.
func (e enrolledView) writeCertificate(sim *simulator.Simulator) error {
	if id, err := openP12(e.Certificate, e.Password); err == nil && e.usable(sim, id) {
		return nil
	}
	c, err := sim.IssueCertificate(simulator.CertificateRequest{Holder: enrolledPerson, Name: "Firmante de " + e.RNC})
	if err != nil {
		return err
	}
	if err := os.WriteFile(e.Password, []byte(c.Password+"\n"), 0o600); err != nil {
		return err
	}
	return os.WriteFile(e.Certificate, c.P12, 0o600)
}

func (enrolledView) usable(sim *simulator.Simulator, id *xmlsig.Identity) bool {
	roots := x509.NewCertPool()
	roots.AddCert(sim.CA())
	_, err := id.Certificate.Verify(x509.VerifyOptions{
		Roots: roots, CurrentTime: time.Now().Add(renewBefore), KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny},
	})
	return err == nil
}
