const root = process.env.FISCALHUB_URL;
const taxpayer = `/v1/taxpayers/${process.env.FISCALHUB_TAXPAYER}`;

async function call(method = "GET", path = "", headers = {}, body = {}) {
  const response = await fetch(root + path, {
    method,
    headers: {
      Authorization: `Bearer ${process.env.FISCALHUB_KEY}`,
      "Content-Type": "application/json",
      ...headers,
    },
    body: method === "POST" ? JSON.stringify(body) : undefined,
  });
  if (!response.ok) {
    const { error } = await response.json();
    throw new Error(`${error.code}: ${error.message} (${error.request_id})`);
  }
  return response;
}
