/** Provides the headers of policies to trainings. The modules are loaded for the first one. */
import { Effect, Layer } from "effect"
import { PolicyHeaders } from "./policyHeaders.ts"

/** The most bytes of a policy that becomes a header in each step folder; `effect export` also writes larger ones. */
const mostBytes = 2 ** 22

export const layer = Layer.succeed(PolicyHeaders, {
  header: (onnx, { commit, example }) =>
    onnx.length > mostBytes
      ? Effect.undefined
      : Effect.promise(() => import("../export/policyHeader.ts")).pipe(
          Effect.flatMap(({ policyHeader }) => policyHeader(onnx, { commit, example })),
          Effect.catchTag("PolicyError", () => Effect.undefined),
        ),
})
