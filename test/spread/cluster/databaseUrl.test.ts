import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { parseUrl, shownUrl } from "../../../src/spread/cluster/databaseUrl.ts"

describe("the address of a database", () => {
  const shown: ReadonlyArray<readonly [string, string]> = [
    ["postgres://rl:secret@db.example:5433/rl?sslmode=require", "postgres://rl@db.example:5433/rl"],
    ["postgres://rl@db/rl", "postgres://rl@db/rl"],
    ["postgres://db:5433/rl", "postgres://db:5433/rl"],
    ["postgres://rl@[::1]:5433/rl", "postgres://rl@[::1]:5433/rl"],
    ["postgres://db/rl?password=secret", "postgres://db/rl"],
    // The following have a wrong form, because characters of the password are not encoded.
    ["postgres://rl:secret/secret@db/rl", "postgres://rl@db/rl"],
    ["postgres://rl:12/secret@db/rl", "postgres://rl@db/rl"],
    ["postgres://rl:secret?#:@secret@db/rl", "postgres://rl@db/rl"],
    ["rl:secret@db/rl", "rl@db/rl"],
  ]
  for (const [url, expected] of shown)
    it(`${url} is shown as ${expected}`, () => assert.strictEqual(shownUrl(url), expected))

  it.effect("has a host, a port, and perhaps a password", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* parseUrl("postgres://rl:secret@db/rl"), {
        host: "db",
        port: 5432,
        hasPassword: true,
      })
      assert.deepStrictEqual(yield* parseUrl("postgresql://[::1]:5433/rl"), {
        host: "::1",
        port: 5433,
        hasPassword: false,
      })
    }),
  )

  it.effect("that has a wrong form is refused with what is expected, and without its password", () =>
    Effect.gen(function* () {
      for (const url of ["mysql://rl:secret@db/rl", "postgres://rl:12/secret@db/rl", "postgres://rl:secret/@db"]) {
        const { message } = yield* Effect.flip(parseUrl(url))
        assert.match(message, /^(mysql|postgres):\/\/rl@db.*: expected the address of a Postgres database, postgres:/)
        assert.notInclude(message, "secret")
      }
    }),
  )
})
