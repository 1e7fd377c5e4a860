#!/bin/sh
# Stops the service, unless this is an upgrade. Acknowledged invoices are in the database.
# dpkg passes the reason of the call, rpm the number of versions that stay.
set -e
case $1 in remove | 0) ;; *) exit 0 ;; esac
if [ -d /run/systemd/system ]; then
  systemctl disable --now fiscalhub.service || true
fi
