// Writes entity_hash.json: texts and what the standard's JavaScript makes of them. Run: node make_entity_hash.mjs > entity_hash.json
import { createHash } from 'node:crypto';

const canonicalOf = (entities) => JSON.stringify(Object.keys(entities).sort().map((k) => [k, entities[k]]));
const hashOf = (text) => createHash('sha256').update(text).digest('hex').slice(0, 12);

// A fixed sequence, so that the file does not change from run to run (mulberry32).
let state = 42;
const random = () => {
  state = (state + 0x6d2b79f5) | 0;
  let t = Math.imul(state ^ (state >>> 15), 1 | state);
  t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
  return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
};
const below = (n) => Math.floor(random() * n);
const pick = (list) => list[below(list.length)];

// Literals as they stand in the text: the reader must make of them what JSON.parse does.
const NUMBERS = ['0', '-0', '0.0', '-0.0', '1', '-1', '10', '100', '1.0', '1.50', '-2.5', '0.1', '0.2', '0.30000000000000004', '1e21', '1E21',
  '1e20', '100000000000000000000', '123456789012345680000', '1e-6', '1e-7', '0.000001', '0.0000001', '0.0000012', '1.5e-7', '5e-324',
  '1.7976931348623157e308', '2.2250738585072014e-308', '9007199254740991', '-9007199254740991', '9007199254740992', '9007199254740994',
  '333333333.33333329', '1e0', '1e+2', '12e-1', '4.50', '2e-3', '0.1e1', '123456789012345', '0.123456789012345', '1234567890.12345',
  '12345678901.12345678', '999999999999999.9', '1000000000000000.1', '1.0000000000000002', '4.35', '0.000123', '25e-2', '1e15', '1e16'];
const STRINGS = ['""', '"a"', '"r123"', '"SKU001"', '"æøå"', '"東京"', '"😀"', '"\\ud83d\\ude00"', '"\\u00e6"', '"line\\nbreak"', '"tab\\t"',
  '"quote \\" here"', '"back\\\\slash"', '"solidus \\/ /"', '"\\u0000"', '"\\u001f\\u007f"', '"\\b\\f\\n\\r\\t"', '"\\u2028\\u2029"', '"\\u003cscript>"',
  '"a longer text that goes on for more than thirty-two bytes, and for more than sixty-four bytes as well"', '"\\ufffd\\uffff"'];
const KEYS = ['a', 'b', 'B', 'Z', '_', '', 'rule_id', 'sku', 'customer_id', 'customer_name', 'customer_nam', 'æ', 'é', '東', '😀', '𝒳', '\\ud83d\\ude01',
  '\\ue000', '\uE001', '\uFFFD', 'ﬀ', '0', '1', '2', '9', '10', '11', '007', '01', '-1', '1.5', '1e3', '4294967294', '4294967295', '4294967296',
  '99999999999', '9007199254740993', '\\u0030x', '\\u0035', '\\n', '\\"', '\\\\', '\\u0001', 'toString', '__proto__', 'constructor', 'length'];

const space = () => (below(6) === 0 ? pick([' ', '\n', '\t', '\r\n  ']) : '');
const scalar = () => (below(2) ? pick(NUMBERS) : pick([...STRINGS, 'true', 'false', 'null']));
const object = (depth) => {
  const names = new Map(); // by meaning: duplicates are refused
  for (let i = below(8); i > 0; --i) { const key = pick(KEYS); names.set(JSON.parse(`"${key}"`), key); }
  const members = [...names.values()].map((key) => `${space()}"${key}"${space()}:${space()}${value(depth - 1)}${space()}`);
  return `{${members.join(',')}}`;
};
const value = (depth) => {
  if (depth > 0 && below(4) === 0) return object(depth);
  if (depth > 0 && below(5) === 0) return `[${Array.from({ length: below(5) }, () => space() + value(depth - 1)).join(',')}]`;
  return scalar();
};

const texts = ['{}', '{"rule_id":"r123","sku":"SKU001"}', '{"sku":"SKU001","rule_id":"r123"}',
  '{"b":{"z":1,"10":2,"9":3,"a":4},"a":[]}', '{"10":1,"9":2,"1":3}',
  '{"\\ud83d\\ude00":1,"\ufffd":2,"\ud7ff":3,"\ue000":4}', '{"x":{"😀":1,"ﬀ":2,"a":3}}'];
for (const number of NUMBERS) texts.push(`{"n":${number}}`);
for (const string of STRINGS) texts.push(`{"s":${string}}`);
for (const key of KEYS) texts.push(`{"x":0,"${key}${key === 'x' ? 'x' : ''}":{"k":1,"${key === 'k' ? 'kk' : key}":2}}`);
while (texts.length < 320) texts.push(object(4));

const cases = [...new Set(texts)].map((text) => {
  const canonical = canonicalOf(JSON.parse(text));
  return { text, canonical, hash: hashOf(canonical) };
});
console.log('[\n' + cases.map((c) => JSON.stringify(c)).join(',\n') + '\n]');
