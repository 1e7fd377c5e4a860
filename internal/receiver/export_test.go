package receiver

import "net/http"

// Upload reads the document of a request.
func Upload(w http.ResponseWriter, r *http.Request, limit int) ([]byte, error) {
	return upload(w, r, limit)
}
