package receiver

import "net/http"

// Upload reads the document of a request.
func (rc *Receiver) Upload(w http.ResponseWriter, r *http.Request, limit int) ([]byte, error) {
	x := &exchange{w: w, r: r}
	defer x.held.Release()
	return rc.upload(x, limit)
}
