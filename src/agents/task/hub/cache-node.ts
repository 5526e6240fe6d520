/** Provides `HubCache`: a folder that only the user can write to. */
import { resolve } from "node:path"
import { Effect, Layer } from "effect"
import { cacheIn, userCaches } from "../../../../bin/userCache.js"
import { messageOf } from "../../../base/text/text.ts"
import { DatasetError } from "../TaskSet.ts"
import { HubCache } from "./HubCache.ts"

export const layer: Layer.Layer<never> = Layer.succeed(HubCache, {
  open: (home) =>
    Effect.try({
      try: () => cacheIn(home === "" ? userCaches() : resolve(home), "datasets"),
      catch: (error) => {
        const advice = "set HF_HOME to a folder that only you can write to"
        return new DatasetError({
          path: "HF_HOME",
          message: `data sets cannot be kept: ${messageOf(error)}; ${advice}`,
        })
      },
    }),
})
