import { assert, describe, it } from "@effect/vitest"
import { signed, type Unsigned } from "../../../../src/run/store/objects/signature.ts"

/** The examples in the API reference of Amazon S3, with the keys and the signatures that it publishes. */
const credentials = {
  accessKeyId: "AKIAIOSFODNN7EXAMPLE",
  secretAccessKey: "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
}
const request: Unsigned = {
  method: "GET",
  host: "examplebucket.s3.amazonaws.com",
  path: "/",
  query: {},
  body: new Uint8Array(0),
  region: "us-east-1",
  millis: Date.UTC(2013, 4, 24),
}
const examples: Readonly<Record<string, readonly [Partial<Unsigned>, string]>> = {
  "GET object": [
    { path: "/test.txt", headers: { range: "bytes=0-9" } },
    "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41",
  ],
  "PUT object": [
    {
      method: "PUT",
      path: "/test%24file.text",
      body: new TextEncoder().encode("Welcome to Amazon S3."),
      headers: { date: "Fri, 24 May 2013 00:00:00 GMT", "x-amz-storage-class": "REDUCED_REDUNDANCY" },
    },
    "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd",
  ],
  "GET bucket lifecycle": [
    { query: { lifecycle: "" } },
    "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543",
  ],
  "GET bucket (list objects)": [
    { query: { "max-keys": "2", prefix: "J" } },
    "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7",
  ],
}

describe("a signature", () => {
  for (const [name, [parts, signature]] of Object.entries(examples)) {
    it(`of ${name} is the published one`, () => {
      const { authorization } = signed({ ...request, ...parts }, credentials)
      assert.strictEqual(authorization?.split("Signature=")[1], signature)
    })
  }

  it("covers the token of temporary keys", () => {
    const { authorization, ...headers } = signed(request, { ...credentials, sessionToken: "token" })
    assert.strictEqual(headers["x-amz-security-token"], "token")
    assert.include(authorization, "SignedHeaders=host;x-amz-content-sha256;x-amz-date;x-amz-security-token,")
  })
})
