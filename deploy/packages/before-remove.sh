# Stops the service. Acknowledged invoices are in the database.
if [ -d /run/systemd/system ]; then
  systemctl disable --now fiscalhub.service || true
fi
