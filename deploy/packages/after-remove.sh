#!/bin/sh
# Keeps the data. The law asks taxpayers to keep their documents for years, and without the
# master key no certificate in the database can be used.
# dpkg passes the reason of the call, rpm the number of versions that stay.
set -e
case $1 in remove | 0) ;; *) exit 0 ;; esac
if [ -d /run/systemd/system ]; then
  systemctl daemon-reload || true
fi
if [ -d /var/lib/fiscalhub ]; then
  echo "fiscalhub: /var/lib/fiscalhub and /etc/fiscalhub/keys stay. Delete them by hand when the documents are no longer needed."
fi
