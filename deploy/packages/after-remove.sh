# Keeps the data. The law asks taxpayers to keep their documents for years, and without the
# master key no certificate in the database can be used.
if [ -d /run/systemd/system ]; then
  systemctl daemon-reload || true
fi
if [ -d /var/lib/fiscalhub ]; then
  echo "fiscalhub: /var/lib/fiscalhub and /etc/fiscalhub/keys stay. Delete them by hand when the documents are no longer needed."
fi
