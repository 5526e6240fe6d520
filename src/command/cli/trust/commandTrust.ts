/**
 * Decides for the `effect` command what a config may do. Requests of the user's own files are permitted and remembered. A
 * request of any other config is permitted if exactly the same request was permitted before, or with `--trust`; otherwise the
 * user is asked. docs/trust.md describes the rules.
 */
import { Context, Effect, Semaphore } from "effect"
import type { TrustRequest, TrustService } from "../../../base/trust/Trust.ts"
import { Untrusted } from "../../../base/trust/Trust.ts"
import { visible } from "../../../base/text/text.ts"
import { warningLabel } from "../output/colors.ts"
import { writeError } from "../output/output.ts"
import { Asking } from "./ask.ts"
import { contentOf, isRemembered, remember, startFolder } from "./remembered.ts"
import { fullRequest, shortRequest } from "./shownRequest.ts"

/** The flags of the command that answer questions of trust. */
export interface TrustFlags {
  /** `--trust`: the user permits everything that the configs of this command request. */
  readonly trusts: boolean
  /** Whether the command may neither ask nor print, as with `--quiet` and `--json`. */
  readonly isSilent: boolean
}

export const TrustFlags = Context.Reference<TrustFlags>("effect-rl/cli/TrustFlags", {
  defaultValue: () => ({ trusts: false, isSilent: true }),
})

/** Whether all configs of the command are files that the user wrote and named. */
export const ConfigsAreOwn = Context.Reference<boolean>("effect-rl/cli/ConfigsAreOwn", { defaultValue: () => false })

const refused = (problem: string) => Effect.fail(new Untrusted({ message: problem }))

const advice = "look at it, and if you trust it, repeat the command with --trust"

/** Makes the service. It also remembers answers in memory, in case that the folder for them can't be written. */
export const makeCommandTrust = Effect.gen(function* () {
  const permitted = new Set<string>()
  // The user could not distinguish two questions at the same time.
  const turn = yield* Semaphore.make(1)

  const isKnown = (content: string): boolean => permitted.has(content) || isRemembered(content)

  const keep = Effect.fnUntraced(function* (content: string, isAsked: boolean) {
    permitted.add(content)
    const problem = remember(content)
    if (problem !== undefined && isAsked)
      yield* writeError(`${warningLabel()} this cannot be remembered, so you will be asked again: ${problem}\n`)
  })

  const decide = Effect.fnUntraced(function* (request: TrustRequest) {
    const content = contentOf(request)
    if (yield* ConfigsAreOwn) return yield* keep(content, false)
    if (isKnown(content)) return
    const { trusts, isSilent } = yield* TrustFlags
    if (trusts) {
      if (!isSilent)
        yield* writeError(`note: ${visible(request.place)}: --trust permits it to ${shortRequest(request)}\n`)
      return yield* keep(content, !isSilent)
    }
    const { isPossible, ask } = yield* Asking
    const unseen = `it would ${shortRequest(request)}, which you have not permitted before`
    if (isSilent || !isPossible()) return yield* refused(`${unseen}; ${advice}`)
    const folder = startFolder(request._tag === "ProgramStart" ? request.cwd : undefined)
    const text = fullRequest(request, folder)
    if (text === undefined) return yield* refused(`${unseen} and which is too long to be shown; ${advice}`)
    const isYes = yield* ask(
      `${text}\nThis config is not one of your own files. Permit it, now and whenever a config asks for exactly this? [y/N] `,
    )
    if (!isYes) return yield* refused(`you did not permit it to ${shortRequest(request)}`)
    return yield* keep(content, true)
  })

  return {
    permit: (request) => turn.withPermit(decide(request)),
    permitKnown: (request) =>
      Effect.suspend(() =>
        isKnown(contentOf(request))
          ? Effect.void
          : refused(
              `it would ${shortRequest(request)}, which you have not permitted before; name the run in the trainer's own config if you trust it`,
            ),
      ),
  } satisfies TrustService
})
