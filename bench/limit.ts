/** Measures how fast one core of this machine computes at most, which a benchmark's speed is a share of. */
import { valueOf } from "./measuring.ts"
import { compiled, printedValue } from "./peers/peers.ts"

/** The detail of a measurement that says how many billions of floating-point operations a second its products did. */
export const gigaflops = "GFLOP/s"

/** The bits of the vectors of AVX2 and AVX-512, and the compiler's flags for them. */
const flagsOf = { 256: ["-mavx2", "-mfma"], 512: ["-mavx512f", "-mfma"] }

/**
 * Returns the speed of a loop of fused multiply-adds in GFLOP/s: what one core does at most with vectors of so many bits.
 * V8 makes vectors of at most 256 bits of those of WebAssembly. Undefined if there is no C compiler, or the processor has no such
 * vectors, or is none of x86.
 */
export const limitOf = async (bits: 256 | 512, pin: string | undefined): Promise<number | undefined> => {
  if (process.arch !== "x64") return undefined
  const program = compiled("limit.c", "cc", ["-O3", "-ffp-contract=fast", `-DBITS=${bits}`, ...flagsOf[bits]])
  if (typeof program === "string") return undefined
  return valueOf({ program: program.path, args: [], value: printedValue }, pin).catch(() => undefined)
}
