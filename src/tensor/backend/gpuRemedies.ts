/**
 * Tells users what to do if a device of ONNX Runtime is not available, was lost or has too little memory, based on ONNX
 * Runtime's error message.
 */

type OrtDevice = "cpu" | "cuda" | "webgpu"

/** The version of ONNX Runtime that this library is tested with. Other versions may round differently. */
const version = "1.30.0"

const steps = "docs/gpu.md has the steps"

const remedies: Readonly<Record<OrtDevice, string>> = {
  cpu: `Add it to your project: npm install onnxruntime-node@${version}; or choose wasm, which needs no package`,
  cuda:
    "It needs Linux on x64, an NVIDIA GPU with CUDA 12 and cuDNN 9, and the provider libraries, which the package's own " +
    "script fetches: ONNXRUNTIME_NODE_INSTALL=cuda12 node node_modules/onnxruntime-node/script/install.js; " +
    steps,
  webgpu:
    "It needs a GPU that Vulkan, Metal or Direct3D 12 can drive, and its driver; on Linux also the Vulkan loader " +
    `(Debian: apt-get install libvulkan1 mesa-vulkan-drivers; NVIDIA: its own driver). vulkaninfo must list the GPU; ${steps}`,
}

/** The prefixes of the names of CUDA's libraries, with the package that contains them. */
const libraries: ReadonlyArray<readonly [string, string]> = [
  ["libcudnn", "cuDNN 9 for CUDA 12 (NVIDIA's package libcudnn9-cuda-12)"],
  ["libcuda.", "the NVIDIA driver, which a container gets from the NVIDIA container toolkit"],
  ["libcu", "the runtime libraries of CUDA 12 (NVIDIA's package cuda-libraries-12-8, or another 12.x)"],
  ["libnvrtc", "the runtime libraries of CUDA 12 (NVIDIA's package cuda-libraries-12-8, or another 12.x)"],
]

/**
 * Returns what to do about a device that is not available. If `missing`, the reason, names a CUDA library, that is to
 * install what contains the library.
 *
 * @example
 * ```ts
 * remedyOf("cuda", "libcudnn.so.9: cannot open shared object file") // "Install cuDNN 9 for CUDA 12 …"
 * ```
 */
export const remedyOf = (device: OrtDevice, missing = ""): string => {
  if (device !== "cuda") return remedies[device]
  const library = /\b(lib(?:cu|nvrtc)[\w.-]*\.so[\w.]*): cannot open/.exec(missing)?.[1]
  const owner = libraries.find(([beginning]) => library?.startsWith(beginning))?.[1]
  if (owner !== undefined) return `Install ${owner}, or add the folder of ${library} to LD_LIBRARY_PATH; ${steps}`
  if (/no CUDA-capable device|driver version is insufficient|CUDA_ERROR_NO_DEVICE/i.test(missing))
    return `nvidia-smi must list a GPU, with a driver for CUDA 12 (525 or newer); ${steps}`
  return remedies.cuda
}

const lost = /device (?:was|is) lost|lost device|device lost|device was destroyed|instance reference no longer exists/i
// If WebGPU could not make a buffer, the error only says that the buffer is "invalid" where it is first used.
const outOfMemory =
  /out of (?:\w+ )?memory|out_of_\w*memory|failed to allocate|alloc_failed|max buffer size|\[invalid buffer|integer overflow/i

/**
 * Returns one line about a program that failed on a GPU: what happened, and what to do about a device that was lost or that
 * has too little memory.
 *
 * @example
 * ```ts
 * failureOf("… The Device was lost before mapping was resolved.") // "the GPU was lost (…); resume the run from …"
 * ```
 */
export const failureOf = (message: string): string => {
  const reason = message
    .replace(/^failed to call OrtRun\(\)\. ERROR_CODE: \d+, ERROR_MESSAGE: /, "")
    .replace(/(?:\/\S+\.(?:cc|h|cpp):\d+ ).*? was false\. /s, "")
    .replace(/\/\S+\.(?:cc|h|cpp):\d+ /, "")
    .split(/\n|;/)[0]
    .trim()
    .replace(/\.$/, "")
  if (lost.test(message)) return `the GPU was lost (${reason}); resume the run from its last checkpoint`
  if (outOfMemory.test(message))
    return `the GPU has no room for this program (${reason}); use fewer envs, smaller minibatches or a smaller model`
  return reason
}
