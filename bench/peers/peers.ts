/**
 * The programs of other projects that `npm run bench -- --against peers` measures against ours, with the same settings.
 * `PEERS.md` says how to get them.
 */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs"
import { delimiter, join } from "node:path"
import { fileURLToPath } from "node:url"
import { type Command, failureOf, temporaryFolder } from "../measuring.ts"

/** A program that does the same work as a benchmark. */
export interface Peer {
  readonly name: string
  /** The name of the benchmark. */
  readonly bench: string
  /** Returns the program from the folder with the peers, or a sentence that says what is missing. */
  readonly find: (folder: string) => Command | string
}

/** The folder with the peers: the environment variable `EFFECT_RL_PEERS`. */
export const peersFolder = (): string => process.env.EFFECT_RL_PEERS ?? join(process.cwd(), "peers")

const source = (name: string): string => fileURLToPath(new URL(name, import.meta.url))

/** The last line that a measuring program prints: `{"value": 1.5}`. */
export const printedValue = /^\{"value": ?([\d.e+]+)/m

/** Compiles a program of this folder, until this process ends; returns its path, or the compiler's last words. */
export const compiled = (
  name: string,
  compiler: string,
  options: ReadonlyArray<string>,
): { readonly path: string } | string => {
  const path = join(temporaryFolder().folder, "program")
  const failure = failureOf(compiler, source(name), "-o", path, ...options)
  return failure === undefined ? { path } : failure
}

/**
 * Makes the two peers of RLtools: one with the widest vectors of the processor, and one whose vectors have at most 256 bits, as
 * V8's have, for processors with AVX-512.
 */
const rltools = (bench: string, file: string, prepare?: (root: string) => string): ReadonlyArray<Peer> => [
  rltoolsWith(bench, file, "RLtools", { prepare }),
  rltoolsWith(bench, file, "RLtools with vectors of 256 bits", {
    prepare,
    options: ["-mno-avx512f"],
    core: "Haswell",
  }),
]

/**
 * Writes RLtools' PPO for Pendulum with the line that it lacks, and returns the folder to include it from. As shipped, the
 * program enables BLAS but does not include what dispatches to it, so its products run in plain loops.
 */
const withBlasInUse = (root: string): string => {
  const { folder } = temporaryFolder()
  const before = "#include <rl_tools/nn/optimizers/adam/instance/operations_generic.h>\n"
  const shipped = readFileSync(join(root, "src/rl/environments/pendulum/ppo/cpu/training.cpp"), "utf8")
  const mended = shipped.replace(before, `${before}#include <rl_tools/nn/operations_cpu_mux.h>\n`)
  mkdirSync(join(folder, "ppo/cpu"), { recursive: true })
  writeFileSync(join(folder, "ppo/cpu/training.cpp"), mended)
  return folder
}

interface Build {
  /** Writes sources that replace those of the clone, and returns the folder to include them from. */
  readonly prepare?: ((root: string) => string) | undefined
  readonly options?: ReadonlyArray<string>
  /** The processor for which OpenBLAS chooses its kernels; if it is undefined, OpenBLAS finds it. */
  readonly core?: string
}

const rltoolsWith = (bench: string, file: string, name: string, { core, options = [], prepare }: Build): Peer => ({
  name,
  bench,
  find: (folder) => {
    const root = join(folder, "rl-tools")
    if (!existsSync(root)) return `no folder ${root}`
    const own = prepare === undefined ? [] : [prepare(root)]
    const cloned = ["include", "src/rl/environments/pendulum", "src/rl/environments/pendulum/ppo/cpu"]
    const includes = [...own, ...cloned.map((path) => join(root, path))].map((path) => `-I${path}`)
    const features = ["BENCHMARK", "RL_TOOLS_DISABLE_TENSORBOARD", "RL_TOOLS_DISABLE_HDF5"]
    const blas = ["RL_TOOLS_BACKEND_ENABLE_BLAS", "RL_TOOLS_BACKEND_ENABLE_OPENBLAS"]
    const definitions = [...features, ...blas].map((feature) => `-D${feature}`)
    const flags = ["-std=c++17", "-Ofast", "-march=native", ...options, "-w", ...includes, ...definitions]
    const program = compiled(file, "c++", [...flags, "-lopenblas", "-lpthread"])
    if (typeof program === "string") return program
    // The settings of this machine must not change the peer.
    const variables = { OPENBLAS_NUM_THREADS: "1", OPENBLAS_CORETYPE: core, OPENBLAS_L2_SIZE: undefined }
    return { program: program.path, args: [], variables, value: printedValue }
  },
})

/** Makes a peer that is a script for Python, whose modules are in clones below the folder with the peers. */
const python = (
  { name, bench, modules, paths }: Pick<Peer, "name" | "bench"> & Record<"modules" | "paths", ReadonlyArray<string>>,
  argsOf: (folder: string) => ReadonlyArray<string>,
  value = printedValue,
): Peer => ({
  name,
  bench,
  find: (folder) => {
    const own = join(folder, "venv/bin/python")
    const program = existsSync(own) ? own : (process.env.EFFECT_RL_PYTHON ?? "python3")
    const missing = paths.map((path) => join(folder, path)).find((path) => !existsSync(path))
    if (missing !== undefined) return `no folder ${missing}`
    const variables = {
      PYTHONPATH: paths.map((path) => join(folder, path)).join(delimiter),
      JAX_PLATFORMS: "cpu",
      OMP_NUM_THREADS: "1",
    }
    const failure = failureOf(program, "-c", `import ${modules.join(", ")}`)
    if (failure !== undefined) return failure
    return { program, args: argsOf(folder), variables, value }
  },
})

const pureJaxRl = (bench: string, envs: number, total: number): Peer =>
  python(
    {
      name: "PureJaxRL",
      bench,
      modules: ["jax", "flax", "optax", "gymnasium", "toolz"],
      paths: ["purejaxrl/purejaxrl", "gymnax", "chex"],
    },
    () => [source("purejaxrl.py"), ...[envs, 128, 4, 4, total].map(String)],
  )

/** Makes the two vector envs of Gymnasium, which step 16 copies of a body by native MuJoCo. */
const nativeMujoco = (bench: string, id: string): ReadonlyArray<Peer> =>
  [
    { name: "SyncVectorEnv", bench: `mujoco-step-${bench}`, mode: "sync" },
    { name: "AsyncVectorEnv, 16 processes", bench: `mujoco-step-${bench}-2`, mode: "async" },
  ].map(({ mode, ...peer }) =>
    python({ ...peer, modules: ["gymnasium.envs.mujoco", "mujoco"], paths: [] }, () => [
      source("gymnasium_mujoco.py"),
      id,
      mode,
      "16",
      "3",
    ]),
  )

/** Makes the peer of a benchmark of a small language model: a Llama of the same sizes in PyTorch. */
const transformers = (bench: string, args: ReadonlyArray<string>): Peer =>
  python({ name: "transformers", bench, modules: ["torch", "transformers"], paths: [] }, () => [
    source("llama.py"),
    ...args,
  ])

export const peers: ReadonlyArray<Peer> = [
  pureJaxRl("ppo-cartpole-cleanrl", 4, 500_000),
  pureJaxRl("ppo-cartpole-1024-128", 1024, 1_310_720),
  python(
    {
      name: "CleanRL",
      bench: "ppo-cartpole-cleanrl",
      modules: ["torch", "gymnasium", "tensorboard", "docstring_parser"],
      paths: ["cleanrl", "tyro/src"],
    },
    (folder) => [join(folder, "cleanrl/cleanrl/ppo.py"), "--no-cuda", "--total-timesteps", "50000"],
    /SPS: (\d+)\s*$/,
  ),
  python(
    {
      name: "Stable-Baselines3",
      bench: "ppo-cartpole-cleanrl",
      modules: ["torch", "gymnasium", "pandas", "cloudpickle"],
      paths: ["sb3"],
    },
    () => [source("sb3.py"), "50000"],
  ),
  ...rltools("ppo-pendulum-rltools", "rltools-ppo.cpp", withBlasInUse),
  rltoolsWith("ppo-pendulum-rltools", "rltools-ppo.cpp", "RLtools as shipped, without BLAS", {}),
  ...rltools("sac-pendulum-rltools", "rltools-sac.cpp"),
  transformers("decoder-train", ["train"]),
  ...[1, 16, 64].map((sequences) => transformers(`decoder-step-${sequences}`, ["step", `${sequences}`])),
  ...nativeMujoco("half-cheetah", "HalfCheetah-v5"),
  ...nativeMujoco("hopper", "Hopper-v5"),
  ...nativeMujoco("ant", "Ant-v5"),
  ...nativeMujoco("humanoid", "Humanoid-v5"),
]
