/**
 * Asks the service `Trust` about the address of a model in a config, because the requests contain texts from files and may
 * contain a key.
 */
import { Effect, Redacted } from "effect"
import { ConfigError, type ConfigOrigin, placeOf, variableIn } from "../../base/config/Config.ts"
import { isLoopback } from "../../base/trust/hostGuard.ts"
import { permit } from "../../base/trust/Trust.ts"
import type { LmConfig } from "./LmConfig.ts"
import type { RequestDestination } from "./Lms.ts"

/** Tells whether an address belongs to this computer. An invalid address does not. */
export const isOfThisComputer = (address: string): boolean =>
  URL.canParse(address) && isLoopback(new URL(address).hostname)

/**
 * Asks about the address in a model's config, unless it belongs to this computer and gets no secret. If the config has no
 * address, asks only if the default server would get another environment variable than its own key.
 */
export const permitAddress = (
  { baseUrl, apiKey }: Pick<LmConfig, "baseUrl" | "apiKey">,
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
