/** Sends the spans and metrics of a command to a collector of OpenTelemetry, if the environment names one. */
import { Effect, Layer } from "effect"
import type { CommandError } from "../../CommandError.ts"
import { checkVariables, telemetryVariables } from "./variables.ts"

/** Makes a Layer with the exporter, whose code is large and is loaded only when it is needed. */
export const telemetryLayer: Layer.Layer<never, CommandError> = Layer.unwrap(
  Effect.gen(function* () {
    const variables = telemetryVariables()
    if (variables === undefined) return Layer.empty
    yield* checkVariables(variables)
    const { layer } = yield* Effect.promise(() => import("./otlp.ts"))
    return layer(variables)
  }),
)
