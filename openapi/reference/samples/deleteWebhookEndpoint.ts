await call("DELETE", `${taxpayer}/webhook-endpoints/${endpointId}`);
