"""The type that the window decodes each query's answer to; any other answer stays plain values."""

from backend.contract.catalog import Catalog
from backend.contract.rpc import data, interactive, models, plan, predictions, storage, training_data
from backend.contract.rpc.protocol import ExportedFile
from backend.contract.run.cost import MeasuredTime
from backend.contract.tokens import batches, comparison, steps, tokens, training, vocabulary

ANSWERS: dict[str, type] = {
    "catalog": Catalog,
    "devices": plan.DeviceList,
    "plan": plan.RunPlan,
    "measure_time": MeasuredTime,
    "export_curves": ExportedFile,
    "export_model": ExportedFile,
    "storage": storage.StorageUse,
    "clear_cache": storage.ClearedCache,
    # Data
    "recognise_data": data.RecognisedData,
    "preview_data": data.DataPreview,
    "data_row": data.DataRow,
    "data_glance": data.DataSummary,
    "export_unusable": ExportedFile,
    "data_report": data.DataReport,
    "training_lengths": training_data.TrainingLengths,
    "training_rows": training_data.TrainingRows,
    "training_feature": training_data.TrainingFeature,
    # Models
    "model_choices": models.ModelChoices,
    "cached_models": models.CachedModels,
    "describe_model": models.ModelDescription,
    "convert_model": models.ModelDescription,
    "model_code": models.ModelCode,
    "agree_to_code": models.ModelCode,
    "hub_search": models.HubSearch,
    "hub_model": models.HubModel,
    "download_model": models.DownloadedModel,
    "hub_account": models.HubAccount,
    "hub_login": models.HubAccount,
    "hub_logout": models.HubAccount,
    # Predictions
    "open_predictions": predictions.PredictionPages,
    "filter_predictions": predictions.PredictionRows,
    "export_predictions": ExportedFile,
    "confusion": predictions.Confusion,
    "prediction_statistics": predictions.PredictionStatistics,
    "threshold_counts": predictions.ThresholdCounts,
    "number_statistics": predictions.NumberStatistics,
    "entity_scores": predictions.EntityScores,
    "file_parts": predictions.FileFit,
    "predict_file": predictions.PredictedFile,
    "answer": interactive.Answer,
    "open_models": interactive.OpenModels,
    "let_go": interactive.OpenModels,
    "add_row": interactive.AddedRow,
    # Tokenizers
    "tokenize": tokens.Tokens,
    "describe_tokenizer": tokens.TokenizerDescription,
    "tokenize_batch": batches.TokenGrid,
    "decode": batches.Decoded,
    "pieces_to_text": batches.PiecesAsText,
    "tokenizer_steps": steps.TokenizerSteps,
    "vocabulary": vocabulary.Vocabulary,
    "find_pieces": vocabulary.FoundRows,
    "piece_origin": vocabulary.PieceOrigin,
    "count_pieces": vocabulary.PieceCounts,
    "export_vocabulary": ExportedFile,
    "compare_text": comparison.TextComparison,
    "compare_data": comparison.DataComparison,
    "train_tokenizer": training.TrainedTokenizer,
    "extend_tokenizer": training.TrainedTokenizer,
    "propose_tokens": training.ProposedTokens,
    "count_proposed": training.TokenCounts,
}
