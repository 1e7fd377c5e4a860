// Signs documents with the package dgii-ecf. Each line of its input is the path of an XML
// document and a number of milliseconds: it signs that document for that time, and answers
// how many it has signed and how many milliseconds that took.
const fs = require('fs');
const readline = require('readline');
const { P12Reader, Signature } = require('dgii-ecf');

const [p12, password] = process.argv.slice(2);
const pair = new P12Reader(fs.readFileSync(password, 'utf8')).getKeyFromFile(p12);
const signature = new Signature(pair.key, pair.cert);

readline.createInterface({ input: process.stdin }).on('line', (line) => {
  const [path, limit] = line.split(' ');
  const xml = fs.readFileSync(path, 'utf8');
  const start = process.hrtime.bigint();
  let signed = 0;
  let took = 0;
  while (took < Number(limit)) {
    if (!signature.signXml(xml, 'ECF').includes('SignatureValue')) throw new Error('not signed');
    signed++;
    took = Number(process.hrtime.bigint() - start) / 1e6;
  }
  console.log(`${signed} ${took}`);
});
