import { mkdtempSync, rmSync } from "node:fs"
import { createRequire } from "node:module"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Effect } from "effect"

interface Server {
  readonly run: () => Promise<{ readonly port: number }>
  readonly close: () => Promise<void>
}

/** The package has no types, and exports a class. */
const S3rver: new (options: object) => Server = createRequire(import.meta.url)("s3rver")

/** Starts a server that speaks S3, with these buckets and a folder of its own, and stops it at the end of the scope. */
export const s3Server = (...buckets: ReadonlyArray<string>) =>
  Effect.gen(function* () {
    const directory = yield* Effect.acquireRelease(
      Effect.sync(() => mkdtempSync(join(tmpdir(), "effect-s3-"))),
      (folder) => Effect.sync(() => rmSync(folder, { recursive: true, force: true })),
    )
    const configureBuckets = buckets.map((name) => ({ name }))
    const server = new S3rver({ address: "127.0.0.1", port: 0, silent: true, directory, configureBuckets })
    const { port } = yield* Effect.acquireRelease(
      Effect.promise(() => server.run()),
      () => Effect.promise(() => server.close()),
    )
    return { endpoint: `http://127.0.0.1:${port}`, accessKeyId: "S3RVER", secretAccessKey: "S3RVER" }
  })
