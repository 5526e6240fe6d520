/** The remarks of docs/scores.md about rows that stand out, by the name of the row. */
export const notes: Readonly<Record<string, string>> = {
  "ppo/InvertedPendulum-v5":
    "all five seeds reach 1,000 by step 30,000 and hold it until step 340,000 at least; later four of them lose it. Once each episode " +
    "is as long as it can be, the advantages are noise, which these settings scale to a deviation of 1 and go on learning from at a " +
    "constant rate: from step 83,000 to the end the entropy of the policy falls from about −0.3 to −5, and the KL divergence of an update " +
    "rises from below 0.002 to between 0.08 and 0.8. Keep the checkpoint with the best validation, or stop early.",
  "ppo/Hopper-v5":
    "below the published figures: most episodes come to a return near 1,000, which is what standing still for all 1,000 steps is " +
    "worth. Two seeds of Stable-Baselines3 with the same settings end at 1,009 and 1,056 on the same machine, within the same interval.",
  "ppo/Ant-v5":
    "one seed of Stable-Baselines3, trained on the same machine with the same settings, reaches 175, less than each of the five seeds. " +
    "The figures of RL Baselines3 Zoo and Tianshou are of older versions of this body.",
  "dqn/CartPole-v1":
    "one seed in ten ends far below 500; validations swing until the end ([dqn.md](algorithms/dqn.md#the-zoos-settings)).",
  "dqn/MountainCar-v0":
    "two seeds in ten end at about −200, which is not solved. Three seeds of Stable-Baselines3 with the same settings end within the same " +
    "interval; the Zoo's figure is of one training.",
}
