// Upload, train, wait, predict with the client that openapi-generator writes for TypeScript (typescript-fetch).
// Arguments: the service's address and the CSV file of the iris flowers.
import { readFileSync } from "node:fs";

import { Configuration, DatasetsApi, JobsApi, PredictionsApi } from "./client/index";

async function main(basePath: string, file: string): Promise<void> {
  const settings = new Configuration({ basePath });
  const body = new Blob([readFileSync(file)]);
  const dataset = await new DatasetsApi(settings).createDataset({ name: "iris", body });
  const names = dataset.columns.map((column) => column.name);

  const jobs = new JobsApi(settings);
  let job = await jobs.trainModel({
    trainRequest: {
      model: "typescript-client",
      dataset: dataset.id,
      target: names.pop(),
      algorithm: { name: "bagging", estimator: { name: "ridge", l2: 0.5 } },
    },
  });
  while (!job.finishedAt) {
    await new Promise((done) => setTimeout(done, 50));
    job = await jobs.getJob({ jobId: job.id });
  }

  const data = [[5.1, 3.5, 1.4, 0.2], [6.3, 3.3, 6.0, 2.5]];
  const predictRequest = { columns: names, data };
  const prediction = await new PredictionsApi(settings).predictRows({ model: "typescript-client", predictRequest });
  console.log(JSON.stringify(prediction.predictions));
}

main(process.argv[2], process.argv[3]);
