import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Effect } from "effect"
import { s3Proxy } from "../../../run/store/objects/s3Proxy.ts"
import { withVariables } from "../withVariables.ts"

/** Starts a server with the bucket `runs`, and gives its key to the commands that run in this process. */
export const bucketServer = (options?: Parameters<typeof s3Proxy>[0]) =>
  Effect.gen(function* () {
    const proxy = yield* s3Proxy(options)
    const cache = yield* Effect.acquireRelease(
      Effect.sync(() => mkdtempSync(join(tmpdir(), "effect-cache-"))),
      (folder) => Effect.sync(() => rmSync(folder, { recursive: true, force: true })),
    )
    const env = {
      AWS_ACCESS_KEY_ID: proxy.accessKeyId,
      AWS_SECRET_ACCESS_KEY: proxy.secretAccessKey,
      AWS_ENDPOINT_URL: proxy.endpoint,
      XDG_CACHE_HOME: cache,
    }
    yield* withVariables(env)
    return { ...proxy, env }
  })
