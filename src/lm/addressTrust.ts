/**
 * Asks the service `Trust` about the address of a model that a config names: what a model is asked holds the texts of files,
 * and the request may hold a key.
 */
import { Effect, Redacted } from "effect"
import { ConfigError, type Origin, placeOf, variableIn } from "../config/Config.ts"
import { isLoopback } from "../config/hostGuard.ts"
import { permit } from "../trust/Trust.ts"
import type { LmConfig } from "./LmConfig.ts"

/** Tells whether an address is of this computer; an address that cannot be read is none. */
export const isOfThisComputer = (address: string): boolean =>
  URL.canParse(address) && isLoopback(new URL(address).hostname)

/** Asks about the address that a model's config names, unless it is of this computer and gets no secret. */
export const permitAddress = ({ baseUrl, apiKey }: LmConfig, from: Origin): Effect.Effect<void, ConfigError> => {
  if (baseUrl === null) return Effect.void
  const variable = variableIn(apiKey === null ? "" : Redacted.value(apiKey).trim()) ?? null
  if (variable === null && isOfThisComputer(baseUrl)) return Effect.void
  return permit({ _tag: "Sending", place: placeOf(from, "baseUrl"), address: baseUrl, variable }).pipe(
    Effect.mapError(({ message }) => ConfigError.at(from, "baseUrl", message)),
  )
}
