module github.com/fiscalhub/fiscalhub/client

go 1.23.0
