/** Makes the headers of policies in a training, by the service `PolicyHeaders`. `stepFolder.ts` writes them. */
import { Context, Effect } from "effect"

/** Writes exported policies as headers of C. */
interface PolicyHeadersService {
  /**
   * Returns the text of a header for the bytes of an ONNX file, whose first example is an observation of the env. Returns undefined
   * if there is none, because the policy is too large for each step folder, or damaged.
   */
  readonly header: (
    onnx: Uint8Array,
    options: { readonly commit: string; readonly example: Float32Array },
  ) => Effect.Effect<string | undefined>
}

/**
 * The service that writes headers. By default it writes none, so that browsers need not load it; `effect-rl/node` provides it. A
 * program without it calls `CHeader.policyHeader`.
 */
export const PolicyHeaders = Context.Reference<PolicyHeadersService>("effect-rl/train/PolicyHeaders", {
  defaultValue: () => ({ header: () => Effect.undefined }),
})
