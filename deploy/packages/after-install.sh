#!/bin/sh
# Creates what the service needs and the package does not contain: its user, its folders and
# a master key. It changes nothing that exists, and starts nothing that did not run.
# dpkg passes the reason of the call, rpm the number of installed versions.
set -e
case $1 in configure | [0-9]*) ;; *) exit 0 ;; esac
if ! getent group fiscalhub >/dev/null; then
  groupadd --system fiscalhub
fi
if ! getent passwd fiscalhub >/dev/null; then
  useradd --system --gid fiscalhub --home-dir /var/lib/fiscalhub --no-create-home \
    --shell /usr/sbin/nologin --comment "fiscalhub service" fiscalhub
fi

chown root:fiscalhub /etc/fiscalhub /etc/fiscalhub/fiscalhub.env
chmod 0750 /etc/fiscalhub
chmod 0640 /etc/fiscalhub/fiscalhub.env
for folder in /var/lib/fiscalhub /etc/fiscalhub/keys; do
  if [ ! -d "$folder" ]; then
    mkdir -p "$folder"
    chown fiscalhub:fiscalhub "$folder"
    chmod 0750 "$folder"
  fi
done
chmod 0700 /etc/fiscalhub/keys

if [ ! -e /etc/fiscalhub/keys/master.key ]; then
  setpriv --reuid=fiscalhub --regid=fiscalhub --init-groups /usr/bin/fiscalhub master-key create \
    --master-key /etc/fiscalhub/keys/master.key >/dev/null
  echo "fiscalhub: /etc/fiscalhub/keys/master.key is a new master key. Keep a copy of it outside of this machine."
fi

if [ -d /run/systemd/system ]; then
  systemctl daemon-reload || true
  systemctl try-restart fiscalhub.service || true
fi
