import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import { sha256 } from "../../src/experiment/sha256.ts"

it.effect("SHA-256 is that of the standard's examples", () =>
  Effect.gen(function* () {
    const digest = (text: string) => sha256(new TextEncoder().encode(text))
    assert.strictEqual(yield* digest(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855")
    assert.strictEqual(yield* digest("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad")
    // A view into a larger buffer is hashed as a view.
    assert.strictEqual(yield* sha256(new TextEncoder().encode("xabcx").subarray(1, 4)), yield* digest("abc"))
  }),
)
