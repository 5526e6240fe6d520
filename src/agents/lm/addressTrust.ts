/**
 * Asks the service `Trust` about the address of a model that a config names: what a model is asked holds the texts of files,
 * and the request may hold a key.
 */
import { Effect, Redacted } from "effect"
import { ConfigError, type ConfigOrigin, placeOf, variableIn } from "../../base/config/Config.ts"
import { isLoopback } from "../../base/config/hostGuard.ts"
import { permit } from "../../base/trust/Trust.ts"
import type { LmConfig } from "./LmConfig.ts"
import type { RequestDestination } from "./Lms.ts"

/** Tells whether an address is of this computer; an address that cannot be read is none. */
export const isOfThisComputer = (address: string): boolean =>
  URL.canParse(address) && isLoopback(new URL(address).hostname)

/**
 * Asks about the address that a model's config names, unless it is of this computer and gets no secret. An address that the
 * config leaves out is asked about if it would get another variable than its own key.
 */
export const permitAddress = (
  { baseUrl, apiKey }: LmConfig,
  destination: RequestDestination | undefined,
  from: ConfigOrigin,
): Effect.Effect<void, ConfigError> => {
  const variable = variableIn(apiKey === null ? "" : Redacted.value(apiKey).trim()) ?? null
  const address = baseUrl ?? destination?.address
  if (address === undefined || (variable === null && (baseUrl === null || isOfThisComputer(address))))
    return Effect.void
  if (baseUrl === null && variable === destination?.usualVariable) return Effect.void
  const key = baseUrl === null ? "apiKey" : "baseUrl"
  return permit({ _tag: "Sending", place: placeOf(from, key), address, variable }).pipe(
    Effect.mapError(({ message }) => ConfigError.at(from, key, message)),
  )
}
