/** Measures how fast one core of this machine computes at most, which a benchmark's speed is a share of. */
import { valueOf } from "./measuring.ts"
import { compiled } from "./peers/peers.ts"

/** The detail of a measurement that says how many billions of floating-point operations a second its products did. */
export const gigaflops = "GFLOP/s"

/**
 * Returns the speed of a loop of fused multiply-adds of 256 bits (AVX2) in GFLOP/s: what one core does at most, on most
 * machines of x86. Undefined if there is no C compiler, or the machine is another one.
 */
export const limitOf = async (pin: string | undefined): Promise<number | undefined> => {
  if (process.arch !== "x64") return undefined
  const program = compiled("limit.c", "cc", ["-O3", "-mavx2", "-mfma"])
  if (typeof program === "string") return undefined
  return valueOf({ program: program.path, args: [], value: /"value": ([\d.e+]+)/ }, pin).catch(() => undefined)
}
