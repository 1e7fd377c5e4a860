const page = await (await call("GET", `${taxpayer}/webhook-endpoints/${endpointId}/deliveries`)).json();
for (const delivery of page.data) {
  console.log(delivery.event_id, delivery.attempt, delivery.http_status);
}
