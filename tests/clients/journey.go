// Upload, train, wait, predict with the client that openapi-generator writes for Go.
// Arguments: the service's address and the CSV file of the iris flowers.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"time"

	valiant "valiant.example/client"
)

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

func main() {
	settings := valiant.NewConfiguration()
	settings.Servers = valiant.ServerConfigurations{{URL: os.Args[1]}}
	client, ctx := valiant.NewAPIClient(settings), context.Background()

	file := must(os.Open(os.Args[2]))
	dataset, _, err := client.DatasetsAPI.CreateDataset(ctx).Name("iris").Body(file).Execute()
	must(dataset, err)

	ridge := valiant.NewRidgeAlgorithm("ridge")
	ridge.SetL2(0.5)
	bagging := valiant.NewBaggingAlgorithm("bagging")
	bagging.SetEstimator(valiant.RidgeAlgorithmAsLearner(ridge))
	request := valiant.NewTrainRequest(valiant.BaggingAlgorithmAsAlgorithm(bagging), "go-client")
	request.SetDataset(dataset.Id)
	request.SetTarget(dataset.Columns[len(dataset.Columns)-1].Name)
	request.SetSeed(1 << 53)
	job, _, err := client.JobsAPI.TrainModel(ctx).TrainRequest(*request).Execute()
	for must(job, err); job.FinishedAt == nil; job, _, err = client.JobsAPI.GetJob(ctx, job.Id).Execute() {
		must(job, err)
		time.Sleep(50 * time.Millisecond)
	}

	columns := []string{}
	for _, column := range dataset.Columns[:len(dataset.Columns)-1] {
		columns = append(columns, column.Name)
	}
	rows := [][]interface{}{{5.1, 3.5, 1.4, 0.2}, {6.3, 3.3, 6.0, 2.5}}
	table := valiant.PredictRequest{PredictColumns: valiant.NewPredictColumns(columns, rows)}
	prediction, _, err := client.PredictionsAPI.PredictRows(ctx, "go-client").PredictRequest(table).Execute()
	must(prediction, err)
	fmt.Println(string(must(json.Marshal(prediction.Predictions))))
}
