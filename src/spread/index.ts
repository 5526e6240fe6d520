/** Exports the use of other threads, processes and machines. */
export * as Dispatcher from "./cluster/Dispatcher.ts"
export { WorkerError } from "./workers/WorkerError.ts"
