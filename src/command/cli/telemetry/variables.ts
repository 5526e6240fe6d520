/** Reads the environment variables of OpenTelemetry, which say whether and where telemetry is sent. */
import { Effect } from "effect"
import type { CommandError } from "../../CommandError.ts"
import { usageError } from "../output/output.ts"

export type TelemetryVariables = Readonly<Record<string, string>>

const signals = ["", "TRACES_", "METRICS_", "LOGS_"]
const endpoints = signals.map((signal) => `OTEL_EXPORTER_OTLP_${signal}ENDPOINT`)
const protocols = signals.map((signal) => `OTEL_EXPORTER_OTLP_${signal}PROTOCOL`)

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
  // Any other value than true counts as false.
  const { OTEL_SDK_DISABLED: disabled = "false", ...variables }: TelemetryVariables = Object.fromEntries(set)
  const isOn = disabled.toLowerCase() !== "true" && endpoints.some((name) => name in variables)
  return isOn ? { ...defaults, ...variables } : undefined
}

/** Returns the protocol of the variables, which is that of all signals; undefined if none names one. */
export const protocolOf = (variables: TelemetryVariables): string | undefined =>
  protocols.flatMap((name) => variables[name] ?? []).at(0)

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
    if (!protocols.includes(name)) continue
    if (!/^http\/(json|protobuf)$/.test(value))
      return Effect.fail(usageError(`${name}: expected http/json or http/protobuf, found ${value}`))
    const common = protocolOf(variables)
    if (value !== common)
      return Effect.fail(
        usageError(`${name}: expected ${common}, as all signals have the same protocol, found ${value}`),
      )
  }
  return Effect.void
}
