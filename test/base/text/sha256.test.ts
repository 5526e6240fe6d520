import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import { sha256, Sha256 } from "../../../src/base/text/sha256.ts"

it.effect("SHA-256 equals the standard's examples", () =>
  Effect.gen(function* () {
    const digest = (text: string) => sha256(new TextEncoder().encode(text))
    assert.strictEqual(yield* digest(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855")
    assert.strictEqual(yield* digest("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad")
    // A view into a larger buffer is hashed as a view.
    assert.strictEqual(yield* sha256(new TextEncoder().encode("xabcx").subarray(1, 4)), yield* digest("abc"))
    // Web Crypto hashes what is large, the library what is small; this is large.
    const million = "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"
    assert.strictEqual(yield* digest("a".repeat(1_000_000)), million)
  }),
)

it.effect("SHA-256 of parts equals that of the whole, for every length and every split", () =>
  Effect.gen(function* () {
    for (let size = 0; size <= 200; size++) {
      const bytes = Uint8Array.from({ length: size }, (_, index) => (index * 167 + size) & 255)
      const hash = new Sha256()
      for (let at = 0; at < size; at += 1 + (size % 97)) hash.update(bytes.subarray(at, at + 1 + (size % 97)))
      assert.strictEqual(hash.size, size)
      assert.strictEqual(hash.hex(), yield* sha256(bytes), `${size} bytes`)
    }
  }),
)
