/** Reads the environment variables of OpenTelemetry, which say whether and where telemetry is sent. */
import { Effect } from "effect"
import type { CommandError } from "../../CommandError.ts"
import { usageError } from "../output/output.ts"

export type TelemetryVariables = Readonly<Record<string, string>>

const endpoints = ["", "TRACES_", "METRICS_", "LOGS_"].map((signal) => `OTEL_EXPORTER_OTLP_${signal}ENDPOINT`)

/** What OpenTelemetry assumes of the variables that are not set. */
const defaults: TelemetryVariables = {
  OTEL_SERVICE_NAME: "effect-rl",
  OTEL_TRACES_EXPORTER: "otlp",
  OTEL_METRICS_EXPORTER: "otlp",
  OTEL_LOGS_EXPORTER: "otlp",
}

/**
 * Returns the variables of OpenTelemetry with their defaults; undefined if none of them names a collector. An empty variable
 * counts as none.
 */
export const telemetryVariables = (
  environment: Readonly<Record<string, string | undefined>> = process.env,
): TelemetryVariables | undefined => {
  const set = Object.entries(environment).flatMap(([name, value = ""]) =>
    /^(OTEL_|TRACEPARENT$)/.test(name) && value.trim() !== "" ? [[name, value.trim()] as const] : [],
  )
  const variables: TelemetryVariables = Object.fromEntries(set)
  const isOn = variables["OTEL_SDK_DISABLED"] !== "true" && endpoints.some((name) => name in variables)
  return isOn ? { ...defaults, ...variables } : undefined
}

/** Fails if a variable has a value that cannot be used. The message does not show the value, which may have a key. */
export const checkVariables = (variables: TelemetryVariables): Effect.Effect<void, CommandError> => {
  for (const name of endpoints) {
    const address = variables[name]
    if (address !== undefined && !/^https?:$/.test(URL.parse(address)?.protocol ?? ""))
      return Effect.fail(
        usageError(`${name}: expected an address that begins with http:// or https://, found another text`),
      )
  }
  for (const [name, value] of Object.entries(variables)) {
    if (
      /^OTEL_EXPORTER_OTLP_(TRACES_|METRICS_|LOGS_)?HEADERS$/.test(name) &&
      !/^[^=,]+=[^,]*(,[^=,]+=[^,]*)*,?$/.test(value)
    )
      return Effect.fail(usageError(`${name}: expected NAME=VALUE, several separated by commas, found another text`))
    if (/^OTEL_EXPORTER_OTLP_(TRACES_|METRICS_|LOGS_)?PROTOCOL$/.test(name) && !/^http\/(json|protobuf)$/.test(value))
      return Effect.fail(usageError(`${name}: expected http/json or http/protobuf, found ${value}`))
  }
  return Effect.void
}
