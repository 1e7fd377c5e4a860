const query = `limit=100${cursor && `&cursor=${cursor}`}`;
const page = await (await call("GET", `${taxpayer}/events?${query}`)).json();
for (const event of page.data) console.log(event.id, event.type);
cursor = page.meta.next_cursor; // store it with what you have processed
