const page = await (await call("GET", `${taxpayer}/webhook-endpoints`)).json();
for (const endpoint of page.data) console.log(endpoint.id, endpoint.url, endpoint.status);
