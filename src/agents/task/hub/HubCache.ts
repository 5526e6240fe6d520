/** Declares the service that opens the folder for downloaded data sets. */
import { Context, Effect } from "effect"
import { DatasetError } from "../TaskSet.ts"

interface HubCacheService {
  /** Returns the folder of data sets. `home` is the value of `HF_HOME`; empty if it is not set. */
  readonly open: (home: string) => Effect.Effect<string, DatasetError>
}

/**
 * The cache of data sets. By default, opening it fails with a `DatasetError`; `effect-rl/node` provides a folder of the user.
 */
export const HubCache = Context.Reference<HubCacheService>("effect-rl/task/HubCache", {
  defaultValue: () => ({
    open: () =>
      Effect.fail(
        new DatasetError({
          path: "HF_HOME",
          message: "data sets of the hub need a folder to be kept in; provide the Layer `platform` of effect-rl/node",
        }),
      ),
  }),
})
